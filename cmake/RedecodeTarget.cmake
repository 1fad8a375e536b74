# One static library a folder; every folder's sources are all its .cpp files.
include_guard()

add_library(redecode_options INTERFACE)
target_include_directories(redecode_options INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/generated)
# Contraction would fuse multiply and add behind our back: every fused step is written by hand.
target_compile_options(redecode_options INTERFACE -Wall -Wextra -Wshadow -Wconversion
  -Wno-sign-conversion -ffp-contract=off -fno-strict-aliasing)
if(REDECODE_WERROR)
  target_compile_options(redecode_options INTERFACE -Werror)
endif()
if(REDECODE_SANITIZE)
  target_compile_options(redecode_options INTERFACE -fsanitize=address,undefined
    -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(redecode_options INTERFACE -fsanitize=address,undefined)
  # GCC 12 sees overflows and uninitialised reads in instrumented code that are not there; the same
  # sources are compiled with these warnings on in the release preset.
  target_compile_options(redecode_options INTERFACE
    $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overflow;-Wno-maybe-uninitialized>)
endif()

# redecode_folder(NAME [DEPENDS target...] [EXCLUDE regex]) makes redecode_NAME from this folder.
function(redecode_folder NAME)
  cmake_parse_arguments(ARG "" "EXCLUDE" "DEPENDS" ${ARGN})
  file(GLOB SOURCES CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  if(ARG_EXCLUDE)
    list(FILTER SOURCES EXCLUDE REGEX "${ARG_EXCLUDE}")
  endif()
  # g++ 12 warns of its own AVX-512 header when it inlines it (GCC bug 105593).
  set(WIDE_SOURCES ${SOURCES})
  list(FILTER WIDE_SOURCES INCLUDE REGEX "_avx512[.]cpp$")
  set_source_files_properties(${WIDE_SOURCES} PROPERTIES
    COMPILE_FLAGS "-Wno-uninitialized $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>")
  if(SOURCES)
    add_library(redecode_${NAME} STATIC ${SOURCES})
    target_link_libraries(redecode_${NAME} PUBLIC redecode_options ${ARG_DEPENDS})
  else()
    add_library(redecode_${NAME} INTERFACE)
    target_link_libraries(redecode_${NAME} INTERFACE redecode_options ${ARG_DEPENDS})
  endif()
endfunction()
