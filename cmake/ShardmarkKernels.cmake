# shardmark_kernel_flags(SOURCES...): compiles those named *_scalar.cpp, *_avx2.cpp and *_avx512.cpp for their instruction sets.
#
# Kernels are optimised in every build type. Besides speed: at -O0 small inline functions of the standard library would be emitted out
# of line, and the linker might take the copy made for AVX-512 everywhere. -fno-math-errno only lets sqrt be one instruction.

set(SHARDMARK_X86 OFF)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(SHARDMARK_X86 ON)
endif()

set(kernels_optimised "-O3 -fno-math-errno")
if(SHARDMARK_SANITIZER)
  # Sanitized and unrolled, the kernels take GCC minutes.
  set(kernels_optimised "-O1 -finline-small-functions -fno-math-errno")
endif()
set(SHARDMARK_FLAGS_scalar "${kernels_optimised}")
set(SHARDMARK_FLAGS_avx2 "${kernels_optimised} -mavx2 -mfma")
set(SHARDMARK_FLAGS_avx512 "${SHARDMARK_FLAGS_avx2} -mbmi2 -mavx512f -mavx512dq -mavx512bw -mavx512vl -mprefer-vector-width=512")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC warns about its own intrinsics (bug 105593).
  string(APPEND SHARDMARK_FLAGS_avx512 " -Wno-uninitialized -Wno-maybe-uninitialized")
endif()

function(shardmark_kernel_flags)
  foreach(source IN LISTS ARGN)
    if(source MATCHES "_(scalar|avx2|avx512)\\.cpp$")
      set_source_files_properties("${source}" PROPERTIES COMPILE_FLAGS "${SHARDMARK_FLAGS_${CMAKE_MATCH_1}}")
    endif()
  endforeach()
endfunction()
