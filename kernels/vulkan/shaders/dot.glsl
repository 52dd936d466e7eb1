// Products of packed bytes, and the bytes of int4 words.
#ifdef ARN_DOT
// OpSDotKHR on four packed bytes, as a raw SPIR-V instruction: glslc has no builtin for it yet.
#extension GL_EXT_spirv_intrinsics : require
spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6019, 6018],
                  id = 4450) int dot_packed(uint a, uint b, spirv_literal int format);
int dot4(uint a, uint b) { return dot_packed(a, b, 0); }
#else
int dot4(uint a, uint b) {
  ivec4 p = bytes_of(a) * bytes_of(b);
  return p.x + p.y + p.z + p.w;
}
#endif
int dot16(uvec4 a, uvec4 b) {
  return dot4(a.x, b.x) + dot4(a.y, b.y) + dot4(a.z, b.z) + dot4(a.w, b.w);
}
// Low and high nibbles of the bytes of an int4 word, minus 8.
uint low_halves(uint word) {
  return (((word & 0x0f0f0f0fu) | 0x80808080u) - 0x08080808u) ^ 0x80808080u;
}
uint high_halves(uint word) { return low_halves(word >> 4); }
// The 16 elements of two int4 words.
uvec4 halves(uvec2 w) {
  return uvec4(low_halves(w.x), high_halves(w.x), low_halves(w.y), high_halves(w.y));
}
