# lane_embed(TARGET ROOT FILES...): a library holding the text of FILES (paths relative to ROOT), read at run time through
# lane::embedded_file(path). The files are real headers; a program that lanec writes carries the ones it uses.
function(lane_embed target root)
  set(out ${CMAKE_CURRENT_BINARY_DIR}/${target}.cpp)
  set(paths)
  foreach(file ${ARGN})
    list(APPEND paths ${root}/${file})
  endforeach()
  add_custom_command(
    OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -DOUT=${out} -DROOT=${root} "-DFILES=${ARGN}" -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${paths} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    VERBATIM)
  add_library(${target} STATIC ${out})
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR}/include)
endfunction()
