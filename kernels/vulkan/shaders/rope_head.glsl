// kQkvRope of one head of one row: its norm and rotation, in place, and its page, if it is a key or
// value. All invocations of the workgroup take part. Include after kv_store.glsl. Define
// ARN_HEAD_ELEMENT(i), ARN_ANGLE(i), ARN_Q_NORM(i), ARN_K_NORM(i) and ARN_V_NORM(i): elements of the
// rows, the angles, and the norms' weights; ARN_ACTIVE_POOL, ARN_POOL_LAYER and ARN_POOL_GROUP: its
// pages.
layout(constant_id = kQkvHeadsId) const uint N_HEADS = 1;
layout(constant_id = kQkvKvHeadsId) const uint N_KV_HEADS = 1;
layout(constant_id = kQkvRotaryDimId) const uint ROTARY_DIM = 0;
layout(constant_id = kQkvHasQNormId) const uint HAS_Q_NORM = 0;
layout(constant_id = kQkvHasKNormId) const uint HAS_K_NORM = 0;
layout(constant_id = kQkvStoresId) const uint STORES = 0;
layout(constant_id = kQkvNormFollowsId) const uint NORM_FOLLOWS = 0;
layout(constant_id = kQkvHasVNormId) const uint HAS_V_NORM = 0;

// Normalises the head, if it has a norm. square: this invocation's part of the sum of squares.
void normalise_head(float square, bool is_query, bool is_value) {
  float inverse = 1.0 / sqrt(reduce_add(square) / float(HEAD_DIM) + push.epsilon);
  if (is_query ? HAS_Q_NORM == 1 : is_value ? HAS_V_NORM == 1 : HAS_K_NORM == 1) {
    for (uint i = gl_LocalInvocationIndex; i < HEAD_DIM; i += WIDTH) {
      float weight = is_query   ? ARN_Q_NORM(i)
                     : is_value ? ARN_V_NORM(i)
                                : ARN_K_NORM(i);
      head_row[i] = head_row[i] * inverse * weight;
    }
  }
}

// at: of the head's first element; clip: 0 is none; factor: multiplies queries; row: of the run.
void finish_head(uint head, uint at, uint angles_at, float clip, float factor, uint row) {
  uint lane = gl_LocalInvocationIndex;
  bool is_query = head < N_HEADS, is_value = head >= N_HEADS + N_KV_HEADS;
  float square = 0.0;
  for (uint i = lane; i < HEAD_DIM; i += WIDTH) {
    float x = ARN_HEAD_ELEMENT(at + i);
    if (clip != 0.0) x = clamp(x, -clip, clip);
    head_row[i] = x;
    square += x * x;
  }
  const bool has_norm = HAS_Q_NORM == 1 || HAS_K_NORM == 1 || HAS_V_NORM == 1;
  if (has_norm && NORM_FOLLOWS == 0) normalise_head(square, is_query, is_value);
  barrier();
  if (ROTARY_DIM != 0 && !is_value) {
    const uint half_dim = ROTARY_DIM / 2;
    for (uint i = lane; i < half_dim; i += WIDTH) {
      float c = ARN_ANGLE(angles_at + i), s = ARN_ANGLE(angles_at + half_dim + i);
      float a = head_row[i], b = head_row[half_dim + i];
      head_row[i] = a * c - b * s;
      head_row[half_dim + i] = b * c + a * s;
    }
  }
  barrier();
  if (has_norm && NORM_FOLLOWS == 1) {
    square = 0.0;
    for (uint i = lane; i < HEAD_DIM; i += WIDTH) square += head_row[i] * head_row[i];
    normalise_head(square, is_query, is_value);
    barrier();
  }
  if (!is_query) factor = 1.0;
  for (uint i = lane; i < HEAD_DIM; i += WIDTH) ARN_HEAD_ELEMENT(at + i) = head_row[i] * factor;
  // Uniform across the workgroup.
  if (STORES == 1 && !is_query) {
    uint kv_head = (head - N_HEADS) % N_KV_HEADS;
    uint position = row_position(row), table = table_at(row_sequence(row), ARN_POOL_GROUP);
    Block block = active_block(ARN_ACTIVE_POOL, !is_value, page_of(table, position),
                               ARN_POOL_LAYER, kv_head);
    store_row(block, position % PAGE_TOKENS);
  }
}
