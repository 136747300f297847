#include "msprobe/expected.h"
