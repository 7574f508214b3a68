# cmake --install: programs, libraries, headers, and a package that find_package(shardmark) finds.

include(CMakePackageConfigHelpers)

set(SHARDMARK_PACKAGE_DIR "${CMAKE_INSTALL_LIBDIR}/cmake/shardmark")

install(DIRECTORY "${PROJECT_SOURCE_DIR}/core/" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/shardmark" FILES_MATCHING PATTERN "*.hpp")
install(TARGETS shardmark_dnnl shardmark_random123 shardmark_hwloc EXPORT shardmark)
install(EXPORT shardmark NAMESPACE shardmark:: FILE shardmarkTargets.cmake DESTINATION "${SHARDMARK_PACKAGE_DIR}")

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/shardmarkConfig.cmake.in" "${CMAKE_BINARY_DIR}/shardmarkConfig.cmake"
  INSTALL_DESTINATION "${SHARDMARK_PACKAGE_DIR}")
write_basic_package_version_file("${CMAKE_BINARY_DIR}/shardmarkConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_BINARY_DIR}/shardmarkConfig.cmake" "${CMAKE_BINARY_DIR}/shardmarkConfigVersion.cmake"
  DESTINATION "${SHARDMARK_PACKAGE_DIR}")
