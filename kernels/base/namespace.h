// Everything an emitted program holds lies in one namespace, named by `lanec compile --symbol-prefix`, so that two
// models link into one program. Compiled alone or into lanec and its tests, the files use this default.
#pragma once
#ifndef LANE_NAMESPACE
#define LANE_NAMESPACE lane_program
#endif
