# Debian packages: `cpack --config build/release/CPackConfig.cmake` makes msdbg, msdbg-mpi and msdbg-dev. `tools/deb` also builds.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME msdbg)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")  # the first line of each description
set(CPACK_PACKAGE_VENDOR msdbg)
set(CPACK_PACKAGE_CONTACT "msdbg developers <msdbg@users.noreply.github.com>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL runtime mpi dev)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)

set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME msdbg)
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "scriptable debugger for MindSpore training
Finds the first operator that went wrong in a training: in the dumps that it
wrote, or while it runs. Conditions and rules run at native speed; questions
are asked at a prompt, by commands, and in Lua scripts.")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_RECOMMENDS less)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SUGGESTS msdbg-mpi)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/packaging/prerm)

set(CPACK_DEBIAN_MPI_PACKAGE_NAME msdbg-mpi)
set(CPACK_COMPONENT_MPI_DESCRIPTION "scriptable debugger for MindSpore training (mpirun)
Lets several processes of msdbg share a check, on many machines, when they
are started by mpirun.")
set(CPACK_DEBIAN_MPI_PACKAGE_DEPENDS "msdbg (= ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})")

set(CPACK_DEBIAN_DEV_PACKAGE_NAME msdbg-dev)
set(CPACK_COMPONENT_DEV_DESCRIPTION "scriptable debugger for MindSpore training (development files)
Headers and static libraries: the agent, which makes any training program
debuggable by msdbg, and the library for native tools that read dumps.")
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "libgrpc++-dev, protobuf-compiler-grpc, libprotobuf-dev, protobuf-compiler, libfmt-dev, libssl-dev, \
libsqlite3-dev, libgraphviz-dev, libluajit-5.1-dev, nlohmann-json3-dev, pkg-config")

# Every package says what changed and under which licence.
set(folder ${PROJECT_BINARY_DIR}/packaging)
configure_file(packaging/changelog ${folder}/changelog.Debian)
execute_process(COMMAND gzip -9nf ${folder}/changelog.Debian COMMAND_ERROR_IS_FATAL ANY)
foreach(component runtime mpi dev)
  string(TOUPPER ${component} upper)
  install(FILES ${folder}/changelog.Debian.gz packaging/copyright COMPONENT ${component}
    DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
endforeach()

include(CPack)
