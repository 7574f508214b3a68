#!/bin/bash
# The table of reported faults in README.md and the tests named case_ID must agree: each row has a test, each test a row.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 1

# Ids in test names (case_07 is 7) and in the first column of the table.
tested=$(grep -rhoE --include='*.cpp' --include='*.sh' --include='*.py' --include=CMakeLists.txt --exclude=cases.sh 'case_[0-9]+' . | sed -E 's/case_0*//' | sort -nu)
listed=$(sed -n '/^| id /,$p' README.md | sed -nE 's/^\| ([0-9]+) \|.*/\1/p' | sort -nu)

without_test=$(comm -13 <(sort <<<"$tested") <(sort <<<"$listed") | sort -n | paste -sd ' ')
without_row=$(comm -23 <(sort <<<"$tested") <(sort <<<"$listed") | sort -n | paste -sd ' ')
echo "$(wc -w <<<"$tested") cases have tests"
if [[ -n $without_test ]]; then echo "in README.md without a test: $without_test"; fi
if [[ -n $without_row ]]; then echo "tested without a row in README.md: $without_row"; fi
[[ -n $tested && -z $without_test$without_row ]]
