# Manual pages and completion scripts: the installed program prints them from its own table of commands.
install(CODE "
  set(PROGRAM \"$<TARGET_FILE:msdbg>\")
  set(EMULATOR \"${CMAKE_CROSSCOMPILING_EMULATOR}\")
  set(SHARE \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATAROOTDIR}\")
  include(\"${CMAKE_CURRENT_LIST_DIR}/InstallManuals.cmake\")")
