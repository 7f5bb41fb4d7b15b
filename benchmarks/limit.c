/* The arithmetic that one step of the Recurrent Bandit cannot do without, in plain C.

   Two layers of three times 128 gates: three 384x128 products forward, one transposed product
   backward, and RMSprop on every weight, with gradients that are outer products and never stored.
   Cheap rational functions stand in for the sigmoids; nothing is sampled and nothing is dropped.

   A weight's step has a root and a reciprocal in it, which one unit of the processor computes. The
   program is compiled in three ways: DIVIDE leaves both to that unit, NEWTON only the root, and
   FREE has neither: no RMSprop any more, but what is left if roots and divisions cost nothing. */

#include <math.h>
#include <stddef.h>
#include <stdint.h>

enum { HIDDEN = 128, GATES = 3 * HIDDEN, ARMS = 10, TILE = 96, LANES = 8 };

static const float RATE = 0.001f, DECAY = 0.99f, EPSILON = 1e-8f;

/* Weights are stored by input unit, so that products, gradients and updates all run along the
   gates, which are contiguous. */
typedef struct {
    float recurrent1[HIDDEN][GATES], input2[HIDDEN][GATES], recurrent2[HIDDEN][GATES];
    float input1[GATES], bias_input1[GATES], bias_hidden1[GATES];
    float bias_input2[GATES], bias_hidden2[GATES];
    float output[ARMS][HIDDEN], bias_output[ARMS];
} Weights;

typedef struct {
    Weights weights, squares;
    float hidden1[HIDDEN], hidden2[HIDDEN];
} Run;

size_t run_bytes(void) { return sizeof(Run); }

static float squash(float x) { return x / (1 + fabsf(x)); }

/* y += x W, a tile of y at a time, so that the sums stay in registers. */
static void product(float *restrict y, const float w[HIDDEN][GATES], const float *restrict x) {
    for (int tile = 0; tile < GATES; tile += TILE) {
        float sum[TILE];
        for (int j = 0; j < TILE; j++) sum[j] = y[tile + j];
        for (int k = 0; k < HIDDEN; k++)
            for (int j = 0; j < TILE; j++) sum[j] += w[k][tile + j] * x[k];
        for (int j = 0; j < TILE; j++) y[tile + j] = sum[j];
    }
}

/* y = W d; the sums are split over lanes, as the compiler may not reorder additions. */
static void transposed(float *restrict y, const float w[HIDDEN][GATES], const float *restrict d) {
    for (int k = 0; k < HIDDEN; k++) {
        float sum[4 * LANES] = {0}, total = 0;
        for (int j = 0; j < GATES; j += 4 * LANES)
            for (int lane = 0; lane < 4 * LANES; lane++) sum[lane] += w[k][j + lane] * d[j + lane];
        for (int lane = 0; lane < 4 * LANES; lane++) total += sum[lane];
        y[k] = total;
    }
}

/* What a gradient is multiplied by, but for the learning rate. */
static inline float inverse(float square) {
#if defined(FREE)
    return square + EPSILON;
#elif defined(NEWTON)
    float x = sqrtf(square) + EPSILON;
    union { float number; int32_t bits; } guess = {x};
    guess.bits = 0x7EF311C7 - guess.bits;
    float y = guess.number * (2 - x * guess.number), error = 1 - x * y;
    return y + y * (error + error * error);
#else
    return 1 / (sqrtf(square) + EPSILON);
#endif
}

/* RMSprop on n weights whose gradient is scale * d. */
static void update(float *restrict w, float *restrict v, const float *restrict d, float scale,
                   int n) {
    for (int j = 0; j < n; j++) {
        float g = scale * d[j];
        float square = DECAY * v[j] + (1 - DECAY) * g * g;
        v[j] = square;
        w[j] -= RATE * g * inverse(square);
    }
}

static void update_outer(float w[HIDDEN][GATES], float v[HIDDEN][GATES], const float *d,
                         const float *x) {
    for (int k = 0; k < HIDDEN; k++) update(w[k], v[k], d, x[k], GATES);
}

/* Gates from their sums, and the next hidden state. */
static void layer(float *restrict gates, float *restrict next, const float *restrict hidden) {
    for (int j = 0; j < GATES; j++) gates[j] = squash(gates[j]);
    for (int k = 0; k < HIDDEN; k++)
        next[k] = 0.5f * (hidden[k] + gates[k] * gates[HIDDEN + k] + gates[2 * HIDDEN + k]);
}

static void gate_gradients(float *restrict d, const float *restrict gates,
                           const float *restrict above) {
    for (int part = 0; part < GATES; part += HIDDEN)
        for (int k = 0; k < HIDDEN; k++)
            d[part + k] = above[k] * (1 - fabsf(gates[part + k]));
}

static void step(Run *run) {
    Weights *w = &run->weights, *v = &run->squares;
    float gates1[GATES], gates2[GATES], next1[HIDDEN], next2[HIDDEN], logits[ARMS];
    float above1[HIDDEN], above2[HIDDEN] = {0}, d1[GATES], d2[GATES];

    for (int j = 0; j < GATES; j++)
        gates1[j] = w->input1[j] + w->bias_input1[j] + w->bias_hidden1[j];
    product(gates1, w->recurrent1, run->hidden1);
    layer(gates1, next1, run->hidden1);
    for (int j = 0; j < GATES; j++) gates2[j] = w->bias_input2[j] + w->bias_hidden2[j];
    product(gates2, w->input2, next1);
    product(gates2, w->recurrent2, run->hidden2);
    layer(gates2, next2, run->hidden2);
    for (int arm = 0; arm < ARMS; arm++) {
        float sum[LANES] = {0}, total = w->bias_output[arm];
        for (int k = 0; k < HIDDEN; k += LANES)
            for (int lane = 0; lane < LANES; lane++)
                sum[lane] += w->output[arm][k + lane] * next2[k + lane];
        for (int lane = 0; lane < LANES; lane++) total += sum[lane];
        logits[arm] = squash(total) - (arm ? 0 : 0.5f);
    }

    for (int arm = 0; arm < ARMS; arm++)
        for (int k = 0; k < HIDDEN; k++) above2[k] += w->output[arm][k] * logits[arm];
    gate_gradients(d2, gates2, above2);
    transposed(above1, w->input2, d2);
    gate_gradients(d1, gates1, above1);

    update_outer(w->recurrent1, v->recurrent1, d1, run->hidden1);
    update_outer(w->input2, v->input2, d2, next1);
    update_outer(w->recurrent2, v->recurrent2, d2, run->hidden2);
    update(w->input1, v->input1, d1, 1, GATES);
    update(w->bias_input1, v->bias_input1, d1, 1, GATES);
    update(w->bias_hidden1, v->bias_hidden1, d1, 1, GATES);
    update(w->bias_input2, v->bias_input2, d2, 1, GATES);
    update(w->bias_hidden2, v->bias_hidden2, d2, 1, GATES);
    for (int arm = 0; arm < ARMS; arm++)
        update(w->output[arm], v->output[arm], next2, logits[arm], HIDDEN);
    update(w->bias_output, v->bias_output, logits, 1, ARMS);
    for (int k = 0; k < HIDDEN; k++) run->hidden1[k] = next1[k], run->hidden2[k] = next2[k];
}

/* Steps of several runs, turn by turn, as the simulator takes them. */
void simulate(Run *runs, int count, int steps) {
    for (int t = 0; t < steps; t++)
        for (int i = 0; i < count; i++) step(&runs[i]);
}
