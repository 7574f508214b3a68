# Language, warnings, sanitizers, and the one way to make a library or a program.

include(GNUInstallDirs)

option(SHARDMARK_TESTS "Build the tests" ON)
option(SHARDMARK_MPI "Build with MPI" ON)
option(SHARDMARK_MUTANTS "Offer a second core with faults on purpose, which only tests link" OFF)
option(SHARDMARK_WERROR "Treat warnings as errors" ON)
set(SHARDMARK_SANITIZER "" CACHE STRING "address, thread or empty")
set_property(CACHE SHARDMARK_SANITIZER PROPERTY STRINGS "" address thread)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, Debug, RelWithDebInfo" FORCE)
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Paths below the source tree count as relative, so that another checkout finds what this one compiled.
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1 "${CCACHE_PROGRAM}")
endif()

add_library(shardmark_flags INTERFACE)
target_compile_options(shardmark_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor
  $<$<BOOL:${SHARDMARK_WERROR}>:-Werror>
  # Bit equality forbids fused multiply-adds that the compiler invents (validation rule 7).
  -ffp-contract=off
  "-ffile-prefix-map=${PROJECT_SOURCE_DIR}=.")
target_include_directories(shardmark_flags INTERFACE "${PROJECT_SOURCE_DIR}/core" "${PROJECT_SOURCE_DIR}")

if(SHARDMARK_SANITIZER STREQUAL "address")
  set(SHARDMARK_SANITIZER_FLAGS -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
elseif(SHARDMARK_SANITIZER STREQUAL "thread")
  set(SHARDMARK_SANITIZER_FLAGS -fsanitize=thread -fno-omit-frame-pointer)
elseif(SHARDMARK_SANITIZER)
  message(FATAL_ERROR "SHARDMARK_SANITIZER=${SHARDMARK_SANITIZER} is unknown (address, thread or empty)")
endif()
target_compile_options(shardmark_flags INTERFACE ${SHARDMARK_SANITIZER_FLAGS})
target_link_options(shardmark_flags INTERFACE ${SHARDMARK_SANITIZER_FLAGS})

# shardmark_library(NAME SOURCES ... DEPENDS targets... PRIVATE targets...): target shardmark_NAME, shardmark::NAME once installed.
#
# With SHARDMARK_MUTANTS also shardmark_NAME_mutants: the same sources with the faults of base/mutant.hpp compiled in, on top of the
# mutant variants of its dependencies. Every library has one, so that one program never mixes both variants of an inline function.
# They are built when a test links them.
function(shardmark_library NAME)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;PRIVATE" ${ARGN})
  add_library(shardmark_${NAME} STATIC ${ARG_SOURCES})
  shardmark_finish_library(shardmark_${NAME} "${ARG_DEPENDS}" "${ARG_PRIVATE}")
  set_target_properties(shardmark_${NAME} PROPERTIES EXPORT_NAME ${NAME})
  install(TARGETS shardmark_${NAME} EXPORT shardmark ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")

  if(SHARDMARK_MUTANTS)
    add_library(shardmark_${NAME}_mutants STATIC EXCLUDE_FROM_ALL ${ARG_SOURCES})
    shardmark_mutant_variants(depends ${ARG_DEPENDS})
    shardmark_mutant_variants(private ${ARG_PRIVATE})
    shardmark_finish_library(shardmark_${NAME}_mutants "${depends}" "${private}")
    target_compile_definitions(shardmark_${NAME}_mutants PUBLIC SHARDMARK_WITH_MUTANTS=1)
  endif()
endfunction()

function(shardmark_finish_library target depends private)
  target_link_libraries(${target} PUBLIC $<BUILD_INTERFACE:shardmark_flags> ${depends} PRIVATE ${private})
  target_include_directories(${target} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/shardmark>)
  target_compile_features(${target} PUBLIC cxx_std_20)
endfunction()

function(shardmark_mutant_variants result)
  set(variants "")
  foreach(target IN LISTS ARGN)
    if(TARGET ${target}_mutants)
      list(APPEND variants ${target}_mutants)
    else()
      list(APPEND variants ${target})
    endif()
  endforeach()
  set(${result} "${variants}" PARENT_SCOPE)
endfunction()

# shardmark_program(NAME SOURCES ... LIBRARIES ...): a program that users start, in <build>/bin.
function(shardmark_program NAME)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBRARIES" ${ARGN})
  # The target of the program `shardmark` must not hide the package's name, so all carry a prefix.
  add_executable(shardmark_program_${NAME} ${ARG_SOURCES})
  set_target_properties(shardmark_program_${NAME} PROPERTIES OUTPUT_NAME ${NAME})
  target_link_libraries(shardmark_program_${NAME} PRIVATE shardmark_flags ${ARG_LIBRARIES})
  install(TARGETS shardmark_program_${NAME} RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endfunction()
