# lane_embed(TARGET ROOT FILES...): a library holding the text of FILES, read at run time through lane::embedded_files().
# A file is a path relative to ROOT, or NAME=PATH for one that the build makes elsewhere. The files are real headers; a
# program that lanec writes carries the ones it uses.
function(lane_embed target root)
  set(out ${CMAKE_CURRENT_BINARY_DIR}/${target}.cpp)
  set(paths)
  foreach(file ${ARGN})
    if(file MATCHES "=(.*)$")
      list(APPEND paths ${CMAKE_MATCH_1})
    else()
      list(APPEND paths ${root}/${file})
    endif()
  endforeach()
  add_custom_command(
    OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -DOUT=${out} -DROOT=${root} "-DFILES=${ARGN}" -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${paths} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    VERBATIM)
  add_library(${target} STATIC ${out})
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR}/include)
endfunction()
