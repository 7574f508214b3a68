# The one way to register a test. Names end in the rank count: name/ranks.
#
#   shardmark_test(NAME SOURCES a.cpp ... LIBRARIES ... LABELS unit [RANKS 1 2 3])
#     one program; run once per rank count. RANKS absent: one process, no MPI (the test may start thread ranks itself).
function(shardmark_test NAME)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBRARIES;LABELS;RANKS" ${ARGN})
  add_executable(${NAME} ${ARG_SOURCES})
  target_link_libraries(${NAME} PRIVATE ${ARG_LIBRARIES} GTest::gtest GTest::gmock GTest::gtest_main)
  add_test(NAME "${NAME}/1" COMMAND ${NAME})
  set_tests_properties("${NAME}/1" PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT 300)
endfunction()
