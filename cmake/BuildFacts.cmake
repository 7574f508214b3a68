# Writes build_facts.hpp when it would change; run at every build, since the commit can change without a configuration.
#   cmake -DSOURCE=... -DOUTPUT=... -DTEMPLATE=... -DVERSION=... -DCOMPILER=... -DFLAGS=... -DBUILD_TYPE=... -DSANITIZER=... -P BuildFacts.cmake

# The repository may belong to somebody else, as in containers.
execute_process(COMMAND git -c "safe.directory=*" -C "${SOURCE}" describe --always --dirty --abbrev=40 "--exclude=*"
  OUTPUT_VARIABLE COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE result)
if(NOT result EQUAL 0 OR NOT COMMIT)
  set(COMMIT "unknown")
endif()
string(STRIP "${FLAGS}" FLAGS)
configure_file("${TEMPLATE}" "${OUTPUT}" @ONLY)
