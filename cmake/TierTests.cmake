# How a program becomes a test.
#
#   tier_program_test(NAME n LABEL l COMMAND program args... [EMPTY_DIRECTORY] [VARIANT v] [ENVIRONMENT a=b ...])
#
# EMPTY_DIRECTORY  runs in a new directory that is removed afterwards.
# VARIANT          the program belongs to another preset's build, which the test NAME v.build makes first.
set(TIER_RUN_IN_EMPTY_DIRECTORY ${PROJECT_SOURCE_DIR}/tests/run_in_empty_directory)

function(tier_program_test)
  cmake_parse_arguments(ARG "EMPTY_DIRECTORY" "NAME;LABEL;VARIANT" "COMMAND;ENVIRONMENT" ${ARGN})
  set(labels ${ARG_LABEL})
  set(sanitize ${TIER_SANITIZE})
  if(ARG_VARIANT)
    list(APPEND labels ${ARG_VARIANT})
    set(sanitize ${ARG_VARIANT})
  endif()
  set(launcher)
  if(ARG_EMPTY_DIRECTORY)
    list(APPEND launcher ${TIER_RUN_IN_EMPTY_DIRECTORY})
  endif()
  if(sanitize MATCHES "^(thread|tsan)$")
    # The runtime of g++ 12 cannot map its shadow where the kernel randomises addresses over more than 28 bits.
    list(APPEND launcher ${PROJECT_SOURCE_DIR}/tests/run_without_aslr)
  endif()
  add_test(NAME ${ARG_NAME} COMMAND ${launcher} ${ARG_COMMAND})
  set_tests_properties(${ARG_NAME} PROPERTIES LABELS "${labels}" TIMEOUT 900 ENVIRONMENT
    "ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1:allocator_may_return_null=1;UBSAN_OPTIONS=print_stacktrace=1;TSAN_OPTIONS=halt_on_error=1:allocator_may_return_null=1;${ARG_ENVIRONMENT}")
  if(ARG_VARIANT)
    set_tests_properties(${ARG_NAME} PROPERTIES FIXTURES_REQUIRED ${ARG_VARIANT})
  endif()
endfunction()
