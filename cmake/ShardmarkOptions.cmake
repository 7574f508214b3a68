# Language, warnings, sanitizers, and the one way to make a library or a program.

option(SHARDMARK_TESTS "Build the tests" ON)
option(SHARDMARK_MPI "Build with MPI" ON)
option(SHARDMARK_MUTANTS "Build a second core with mutants, which only tests link" OFF)
option(SHARDMARK_WERROR "Treat warnings as errors" ON)
set(SHARDMARK_SANITIZER "" CACHE STRING "address, thread or empty")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

add_library(shardmark_flags INTERFACE)
target_compile_options(shardmark_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor
  $<$<BOOL:${SHARDMARK_WERROR}>:-Werror>
  # Bit equality forbids fused multiply-adds that the compiler invents (validation rule 7).
  -ffp-contract=off
  "-ffile-prefix-map=${PROJECT_SOURCE_DIR}=.")
target_include_directories(shardmark_flags INTERFACE "${PROJECT_SOURCE_DIR}/core" "${PROJECT_SOURCE_DIR}")
if(SHARDMARK_SANITIZER)
  target_compile_options(shardmark_flags INTERFACE -fsanitize=${SHARDMARK_SANITIZER} -fno-omit-frame-pointer)
  target_link_options(shardmark_flags INTERFACE -fsanitize=${SHARDMARK_SANITIZER})
endif()

# shardmark_library(NAME SOURCES... DEPENDS targets...): target shardmark_NAME
function(shardmark_library NAME)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;PRIVATE" ${ARGN})
  add_library(shardmark_${NAME} STATIC ${ARG_SOURCES})
  target_link_libraries(shardmark_${NAME} PUBLIC shardmark_flags ${ARG_DEPENDS} PRIVATE ${ARG_PRIVATE})
endfunction()
