# Warnings, the CPU baseline and the sanitizers, as one interface target that every own target links privately.
add_library(tier_flags INTERFACE)
target_compile_options(tier_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wold-style-cast
  -Wcast-align -Woverloaded-virtual -Wconversion -Wno-sign-conversion -Werror -fno-strict-aliasing)
target_include_directories(tier_flags INTERFACE ${PROJECT_SOURCE_DIR}/src)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # The annotations of base/mutex.h are checked here; g++ does not know them.
  target_compile_options(tier_flags INTERFACE -Wthread-safety)
endif()
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  # What ships runs on any x86-64-v2; faster paths are chosen at run time.
  add_compile_options(-march=x86-64-v2)
endif()
if(NOT TIER_EXCEPTIONS)
  add_compile_options(-fno-exceptions)
endif()
if(TIER_SANITIZE)
  add_compile_options(-fsanitize=${TIER_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all -g)
  add_link_options(-fsanitize=${TIER_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # The code that the sanitizers insert makes g++ 12 see uninitialised and out-of-range uses where there are none; the plain
    # builds keep these warnings.
    target_compile_options(tier_flags INTERFACE -Wno-maybe-uninitialized -Wno-array-bounds -Wno-stringop-overflow
      -Wno-restrict -Wno-null-dereference)
  endif()
endif()
if(TIER_BUILD_FUZZERS)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "TIER_BUILD_FUZZERS needs clang: use cmake --preset fuzz")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
