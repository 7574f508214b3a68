#!/bin/bash
# Installs the build into a fresh folder, builds a project outside the tree against it, and starts what was installed.
set -eu
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT

cmake --install "$SHARDMARK_BUILD" --prefix "$prefix/shardmark" >"$prefix/install.log"
cmake -S "$SHARDMARK_SOURCE/validation/install/consumer" -B "$prefix/build" "-DCMAKE_PREFIX_PATH=$prefix/shardmark" -DCMAKE_BUILD_TYPE=Debug
cmake --build "$prefix/build"
"$prefix/build/consumer" | tee "$prefix/output"
grep -q '^depth 3 samples 3 version 0' "$prefix/output"

programs=0
for program in "$prefix"/shardmark/bin/*; do
  "$program" --version >"$prefix/version"
  grep -q '(shardmark)' "$prefix/version"
  programs=$((programs + 1))
done
echo "$programs programs start"
test "$programs" -gt 0

# Nothing installed may point back to where it was built.
if grep -rlF "$SHARDMARK_BUILD" "$prefix/shardmark/lib" "$prefix/shardmark/include" --include='*.cmake' --include='*.hpp'; then
  echo "installed files name the build tree"
  exit 1
fi
