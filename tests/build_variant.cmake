# Builds PRESET in DIRECTORY. Run with cmake -P, in the root of the sources.
execute_process(COMMAND ${CMAKE_COMMAND} --preset ${PRESET} -B ${DIRECTORY} COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} --build ${DIRECTORY} COMMAND_ERROR_IS_FATAL ANY)
