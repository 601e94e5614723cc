# cmake --install: the library, its public headers, the tier command, and what find_package(tier) and pkg-config need. The
# installed tree may be moved: every path in it is relative to the file that names it.
include(CMakePackageConfigHelpers)

set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tier)
set(pc_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(TARGETS tier EXPORT tierTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ ${PROJECT_BINARY_DIR}/include/
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
if(TARGET tier_command)
  install(TARGETS tier_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

install(EXPORT tierTargets NAMESPACE tier:: DESTINATION ${config_dir})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/tierConfig.cmake.in ${PROJECT_BINARY_DIR}/tierConfig.cmake
  INSTALL_DESTINATION ${config_dir})
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tierConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tierConfig.cmake ${PROJECT_BINARY_DIR}/tierConfigVersion.cmake
  ${PROJECT_SOURCE_DIR}/cmake/TierDependencies.cmake DESTINATION ${config_dir})

file(RELATIVE_PATH TIER_PREFIX_FROM_PC /prefix/${pc_dir} /prefix)
configure_file(${PROJECT_SOURCE_DIR}/cmake/tier.pc.in ${PROJECT_BINARY_DIR}/tier.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/tier.pc DESTINATION ${pc_dir})
