# The libraries that do everything that isn't our core purpose. All are Debian packages (README).

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)  # SHA-256 of data and programs, for records

# Debian's dnnl-config.cmake asks for OpenCL's headers, which the CPU engine doesn't need: look for the library itself.
find_path(DNNL_INCLUDE_DIR dnnl.h REQUIRED)
find_library(DNNL_LIBRARY dnnl REQUIRED)
add_library(shardmark_dnnl INTERFACE)
target_include_directories(shardmark_dnnl SYSTEM INTERFACE "${DNNL_INCLUDE_DIR}")
target_link_libraries(shardmark_dnnl INTERFACE "${DNNL_LIBRARY}")

find_path(RANDOM123_INCLUDE_DIR Random123/philox.h REQUIRED)
add_library(shardmark_random123 INTERFACE)
target_include_directories(shardmark_random123 SYSTEM INTERFACE "${RANDOM123_INCLUDE_DIR}")

find_path(HWLOC_INCLUDE_DIR hwloc.h REQUIRED)
find_library(HWLOC_LIBRARY hwloc REQUIRED)
add_library(shardmark_hwloc INTERFACE)
target_include_directories(shardmark_hwloc SYSTEM INTERFACE "${HWLOC_INCLUDE_DIR}")
target_link_libraries(shardmark_hwloc INTERFACE "${HWLOC_LIBRARY}")

if(SHARDMARK_MPI)
  find_package(MPI REQUIRED COMPONENTS CXX)
  # The deprecated C++ bindings of MPI are not used.
  target_compile_definitions(MPI::MPI_CXX INTERFACE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX MPI_CXX_SKIP_MPICXX)
endif()

if(SHARDMARK_TESTS)
  find_package(GTest REQUIRED)
endif()
