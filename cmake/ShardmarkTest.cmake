# The one way to register a test. Names end in the rank count: name/ranks.
#
#   shardmark_test(NAME SOURCES a.cpp ... LIBRARIES shardmark_x ... LABELS unit [RANKS 1 2 3] [ARGS ...] [ENVIRONMENT A=b ...] [TIMEOUT 300])
#     One GoogleTest program. Without RANKS: one process, no MPI (the test may start thread ranks itself), registered as NAME/1.
#     With RANKS: started by mpirun once for each rank count, with one verdict over all ranks (validation/main/gtest_main_mpi.cpp).
#
#   shardmark_script_test(NAME COMMAND bash script.sh ... LABELS cost [RANKS r] [ENVIRONMENT ...] [TIMEOUT 300])
#     Drives finished programs. The script finds SHARDMARK_SOURCE (this tree), SHARDMARK_BUILD, SHARDMARK_BIN (the programs) and
#     SHARDMARK_MPIRUN (the launcher with its options, without -n).
#
# A test that lacks hardware exits 77 and is reported as skipped, never as passed. A test that ran nothing fails.

set(SHARDMARK_MAX_TEST_RANKS 64)
set(SHARDMARK_TEST_TIMEOUT_SECONDS 300)
set(SHARDMARK_MPIRUN "")

if(SHARDMARK_MPI)
  execute_process(COMMAND "${MPIEXEC_EXECUTABLE}" --version OUTPUT_VARIABLE launcher_version ERROR_QUIET)
  # No binding: concurrent mpiruns would all bind to core 0. More ranks than cores are normal in tests.
  if(launcher_version MATCHES "Open MPI|OpenRTE|PRRTE|prte")
    set(SHARDMARK_MPIRUN "${MPIEXEC_EXECUTABLE}" --map-by :OVERSUBSCRIBE --bind-to none)
  else()
    set(SHARDMARK_MPIRUN "${MPIEXEC_EXECUTABLE}" --bind-to none)
  endif()
endif()

# Thread and address sanitizers watch the programs that don't start MPI, whose libraries aren't instrumented.
set(SHARDMARK_SANITIZED_LABELS unit schedule ranks)
if(SHARDMARK_SANITIZER)
  add_custom_target(shardmark_sanitized_tests)
endif()

function(shardmark_check_ranks name)
  foreach(ranks IN LISTS ARGN)
    if(NOT ranks MATCHES "^[0-9]+$" OR ranks LESS 1 OR ranks GREATER SHARDMARK_MAX_TEST_RANKS)
      message(FATAL_ERROR "test ${name}: impossible rank count '${ranks}' (1 to ${SHARDMARK_MAX_TEST_RANKS})")
    endif()
  endforeach()
endfunction()

function(shardmark_register_test name ranks labels timeout environment)
  if(NOT labels)
    message(FATAL_ERROR "test ${name} has no LABELS")
  endif()
  # One job's clean-up can remove the session folder of another that is starting: each gets its own.
  string(MAKE_C_IDENTIFIER "${name}" folder)
  set(folder "${CMAKE_BINARY_DIR}/tmp/${folder}")
  file(MAKE_DIRECTORY "${folder}")
  set(processors ${ranks})
  if(processors GREATER 2)
    set(processors 2)
  endif()
  string(REPLACE ";" " " launcher "${SHARDMARK_MPIRUN}")
  set_tests_properties("${name}" PROPERTIES
    LABELS "${labels}" TIMEOUT ${timeout} SKIP_RETURN_CODE 77 PROCESSORS ${processors}
    ENVIRONMENT "OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1;OMPI_MCA_orte_tmpdir_base=${folder};PRTE_MCA_prte_tmpdir_base=${folder};SHARDMARK_SOURCE=${PROJECT_SOURCE_DIR};SHARDMARK_BUILD=${CMAKE_BINARY_DIR};SHARDMARK_BIN=${CMAKE_RUNTIME_OUTPUT_DIRECTORY};SHARDMARK_MPIRUN=${launcher};TSAN_OPTIONS=halt_on_error=1:suppressions=${PROJECT_SOURCE_DIR}/validation/sanitizers/tsan.supp;LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/validation/sanitizers/lsan.supp;${environment}")
endfunction()

function(shardmark_skipped_test name labels timeout)
  add_test(NAME "${name}" COMMAND sh -c "echo 'skipped: needs MPI (configure with -DSHARDMARK_MPI=ON)'; exit 77")
  shardmark_register_test("${name}" 1 "${labels}" "${timeout}" "")
endfunction()

function(shardmark_test NAME)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;LIBRARIES;LABELS;RANKS;ARGS;ENVIRONMENT" ${ARGN})
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "test ${NAME}: unknown arguments ${ARG_UNPARSED_ARGUMENTS}")
  endif()
  if("RANKS" IN_LIST ARG_KEYWORDS_MISSING_VALUES OR NOT ARG_SOURCES)
    message(FATAL_ERROR "test ${NAME}: RANKS or SOURCES is empty")
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT ${SHARDMARK_TEST_TIMEOUT_SECONDS})
  endif()
  shardmark_check_ranks(${NAME} ${ARG_RANKS})

  if(ARG_RANKS AND NOT SHARDMARK_MPI)
    foreach(ranks IN LISTS ARG_RANKS)
      shardmark_skipped_test("${NAME}/${ranks}" "${ARG_LABELS}" ${ARG_TIMEOUT})
    endforeach()
    return()
  endif()
  if(ARG_RANKS AND SHARDMARK_SANITIZER)
    return()
  endif()

  add_executable(${NAME} ${ARG_SOURCES})
  set_target_properties(${NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
  target_link_libraries(${NAME} PRIVATE ${ARG_LIBRARIES} shardmark_flags GTest::gtest GTest::gmock)
  if(NOT ARG_RANKS)
    target_link_libraries(${NAME} PRIVATE shardmark_test_main)
    add_test(NAME "${NAME}/1" COMMAND ${NAME} ${ARG_ARGS})
    shardmark_register_test("${NAME}/1" 1 "${ARG_LABELS}" ${ARG_TIMEOUT} "${ARG_ENVIRONMENT}")
  else()
    # The main needs a communicator: the one of the mutant core in a program that links that core.
    set(comm shardmark_comm)
    if(ARG_LIBRARIES MATCHES "_mutants(;|$)")
      set(comm shardmark_comm_mutants)
    endif()
    target_link_libraries(${NAME} PRIVATE shardmark_test_main_mpi ${comm})
    foreach(ranks IN LISTS ARG_RANKS)
      add_test(NAME "${NAME}/${ranks}" COMMAND ${SHARDMARK_MPIRUN} -n ${ranks} $<TARGET_FILE:${NAME}> ${ARG_ARGS})
      shardmark_register_test("${NAME}/${ranks}" ${ranks} "${ARG_LABELS}" ${ARG_TIMEOUT}
        "SHARDMARK_TEST_RANKS=${ranks};${ARG_ENVIRONMENT}")
    endforeach()
  endif()

  if(SHARDMARK_SANITIZER)
    foreach(label IN LISTS SHARDMARK_SANITIZED_LABELS)
      if(label IN_LIST ARG_LABELS)
        add_dependencies(shardmark_sanitized_tests ${NAME})
      endif()
    endforeach()
  endif()
endfunction()

function(shardmark_script_test NAME)
  cmake_parse_arguments(ARG "" "RANKS;TIMEOUT" "COMMAND;LABELS;ENVIRONMENT" ${ARGN})
  if(ARG_UNPARSED_ARGUMENTS OR NOT ARG_COMMAND)
    message(FATAL_ERROR "test ${NAME}: no COMMAND, or unknown arguments ${ARG_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT ARG_RANKS)
    set(ARG_RANKS 1)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT ${SHARDMARK_TEST_TIMEOUT_SECONDS})
  endif()
  shardmark_check_ranks(${NAME} ${ARG_RANKS})
  if(SHARDMARK_SANITIZER)
    return()
  endif()
  if(ARG_RANKS GREATER 1 AND NOT SHARDMARK_MPI)
    shardmark_skipped_test("${NAME}/${ARG_RANKS}" "${ARG_LABELS}" ${ARG_TIMEOUT})
    return()
  endif()
  add_test(NAME "${NAME}/${ARG_RANKS}" COMMAND ${ARG_COMMAND} WORKING_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}")
  shardmark_register_test("${NAME}/${ARG_RANKS}" ${ARG_RANKS} "${ARG_LABELS}" ${ARG_TIMEOUT} "${ARG_ENVIRONMENT}")
endfunction()
