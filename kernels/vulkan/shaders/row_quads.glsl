// Rows of f32 in vectors of four. WHOLE: n, and the distance between rows, are multiples of four.
#define ARN_ROW_QUADS(NAME, ELEMENTS, QUADS)                                       \
  vec4 NAME(uint from, uint c, uint n) {                                           \
    if (WHOLE == 1) return QUADS[(from + c) / 4];                                  \
    return vec4(ELEMENTS[from + c], c + 1 < n ? ELEMENTS[from + c + 1] : 0.0,      \
                c + 2 < n ? ELEMENTS[from + c + 2] : 0.0,                          \
                c + 3 < n ? ELEMENTS[from + c + 3] : 0.0);                         \
  }
#define ARN_STORE_ROW_QUAD(NAME, ELEMENTS, QUADS)                  \
  void NAME(uint from, uint c, uint n, vec4 value) {               \
    if (WHOLE == 1) {                                              \
      QUADS[(from + c) / 4] = value;                               \
    } else {                                                       \
      for (uint j = 0; j < 4 && c + j < n; ++j) ELEMENTS[from + c + j] = value[j]; \
    }                                                              \
  }
// Zero after the first n_left elements.
vec4 first_of(vec4 x, uint n_left) {
  return mix(vec4(0.0), x, lessThan(uvec4(0, 1, 2, 3), uvec4(n_left)));
}
float least_of(vec4 x) { return min(min(x.x, x.y), min(x.z, x.w)); }
float largest_of(vec4 x) { return max(max(x.x, x.y), max(x.z, x.w)); }
