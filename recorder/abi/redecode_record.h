/* recorder/abi/redecode_record.h - records what a decode engine schedules; C ABI of
 * libredecode_record.
 *
 * NAME
 *   rr_open, rr_lane_open, rr_arrive, rr_depart, rr_page, rr_step, rr_outputs, rr_event, rr_close
 *
 * USE
 *   rr_options o;
 *   rr_options_init(&o, sizeof o);
 *   o.path = "fleet.rdt";
 *   o.page_size = 64;
 *   rr_recorder *r = rr_open(&o, message, sizeof message);
 *   rr_lane *lane = rr_lane_open(r);            // one a thread
 *   for (each engine iteration) {
 *     rr_arrive(lane, &arrival);                // what changed since the last one
 *     rr_page(lane, request, index, page, 0);
 *     rr_step(lane, &step);                     // rows as columns, by pointer and stride
 *     ... launch, read back ...
 *     rr_outputs(lane, &outputs);
 *   }
 *   rr_close(r, &stats);
 *
 * COST
 *   rr_step copies the columns into a ring: about 1.2 KB for 64 rows, 100 ns. No call between
 *   rr_lane_open and rr_close allocates, locks, makes a system call or throws, but for rr_flush,
 *   rr_trigger, rr_request_id and, under RR_BLOCK, a full ring. Compression and files belong to a
 *   thread of the library.
 *
 * LOSS
 *   The default policy never waits: with no room in the ring a record is dropped and counted, the
 *   trace gets a gap record that names the steps, and rr_stats says so. Rings are MAP_SHARED files:
 *   when the process is killed, `redecode trace recover` finds in them what had not reached the
 *   trace.
 *
 * THREADS
 *   A lane belongs to one thread at a time. Steps come from one lane; arrivals, departures, pages,
 *   outputs and events may come from any. rr_stats_read and rr_trigger may be called from any
 *   thread.
 *
 * VERSIONS
 *   Structs begin with their size, set by rr_*_init; fields are only ever added at the end. A
 *   library accepts every smaller size.
 */
#ifndef REDECODE_RECORD_H
#define REDECODE_RECORD_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define RR_API __attribute__((visibility("default")))
#else
#define RR_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define RR_ABI_VERSION 1u

typedef struct rr_recorder rr_recorder;
typedef struct rr_lane rr_lane;

/* What calls return: 0 or above went as described, below 0 nothing was done. */
enum {
  RR_OK = 0,
  RR_DROPPED = 1, /* no room in the ring: counted, a gap will say so */
  RR_TIMEOUT = 3, /* RR_BLOCK waited block_timeout_us in vain; then as RR_DROPPED */
  RR_FAILED = 4,  /* the file cannot be written any more: rr_error_text says why */
  RR_EINVAL = -1, /* an argument has no meaning: null, size, rows above 65536 */
  RR_ESTATE = -2, /* wrong order of calls: rows without begin, steps from a second lane */
  RR_ETOOBIG = -3 /* larger than a quarter of the ring; counted as a loss */
};

enum { RR_PHASE_PREFILL = 0, RR_PHASE_DECODE = 1, RR_PHASE_MIXED = 2 };
enum { RR_FINISHED = 0, RR_PREEMPTED = 1, RR_CANCELLED = 2, RR_ABORTED = 3 };

enum {
  RR_EVENT_REGISTERED = 0, /* text: the engine's own id */
  RR_EVENT_QUEUED = 1,
  RR_EVENT_KV_HANDED_OVER = 2, /* a: first page, b: pages */
  RR_EVENT_BLOCKS_ALLOCATED = 3,
  RR_EVENT_BLOCKS_FREED = 4,
  RR_EVENT_BLOCKS_COPIED = 5, /* a: from, b: to */
  RR_EVENT_BLOCKS_SHARED = 6, /* a: block, b: its users now */
  RR_EVENT_ENVIRONMENT = 7,   /* text: NAME=value */
  RR_EVENT_NOTE = 8
};

enum {
  RR_DROP = 0,     /* never waits */
  RR_BLOCK = 1,    /* waits up to block_timeout_us for room */
  RR_KEEP_LAST = 2 /* keeps the newest ring_bytes; writes them only when triggered */
};

enum { RR_LAYOUT_ROWS = 0, RR_LAYOUT_COLUMNS = 1 };

#define RR_TAKE_CLOCK UINT64_C(0) /* time_ns: read CLOCK_MONOTONIC here */
#define RR_NO_TIME UINT64_MAX     /* time_ns: none, for recordings that must be repeatable */
#define RR_NEXT_STEP UINT64_MAX   /* rr_step.index: one more than the step before */
#define RR_LAST_STEP UINT64_MAX   /* rr_outputs.step: the lane's newest step */
#define RR_NO_REQUEST UINT32_MAX

typedef struct rr_options {
  uint32_t size; /* of this struct */
  uint32_t abi_version;
  const char* path;          /* the trace; with rotation the folder of a set */
  const char* ring_dir;      /* NULL: /dev/shm where it can be written, else beside path */
  uint64_t ring_bytes;       /* a lane; rounded up to a power of two; 0: 8 MiB */
  int32_t policy;            /* RR_DROP ... */
  uint32_t block_timeout_us; /* 0: for ever */
  int32_t overwrite;         /* replace an existing trace */
  int32_t layout;            /* RR_LAYOUT_COLUMNS is the default of rr_options_init */
  int32_t zstd_level;        /* 0: 1 for columns, 3 for rows */
  uint32_t chunk_steps;      /* 0: 1024 */
  uint32_t flush_ms;         /* a chunk is closed after this time at the latest; 0: 1000 */
  uint32_t sync_ms;          /* fdatasync at most this often; 0: never */
  uint64_t rotate_bytes;     /* a new file after this size; 0: never */
  uint32_t rotate_s;         /* a new file after this time; 0: never */
  uint32_t keep_files;       /* older ones are deleted; 0: all are kept */
  const char* sampling;      /* "all", "1/16" of requests, "requests:ID,ID", "sessions:N,N",
                                "steps:A..B"; NULL: all */
  const char* trigger;       /* RR_KEEP_LAST: "token:N", "nonfinite", "step_over_ms:N", "signal:N",
                                joined by commas; NULL: rr_trigger only */
  /* the header */
  const char* writer;       /* "sglang 0.5.2"; NULL: the library */
  const char* model_family; /* NULL: "external" */
  const char* model_spec;
  const char *weights_sha256, *tokenizer_sha256, *config_sha256; /* 64 hex digits or NULL */
  uint32_t vocab, layers;
  uint32_t page_size, page_count, max_batch_rows, max_seq_len;
  const uint32_t* buckets; /* [bucket_count], ascending */
  uint32_t bucket_count;
  uint32_t reserved0;
  const char* workload;           /* for people */
  const char* const* environment; /* [environment_count], "NAME=value" */
  uint32_t environment_count;
  uint32_t reserved1;
} rr_options;

/* Bytes from `data` on, one value each `stride` bytes, `width` bytes wide (4 or 8; signed or not is
 * the same). stride 0: width. */
typedef struct rr_column {
  const void* data;
  int32_t stride;
  int32_t width;
} rr_column;

typedef struct rr_arrival {
  uint32_t size;
  uint32_t request; /* from rr_request_id, or the engine's own numbers: unique in the trace */
  uint32_t session, round;
  uint32_t prompt_tokens, cached_tokens, max_tokens;
  int32_t resumed; /* back after a preemption */
  float temperature, top_p, min_p;
  int32_t top_k;
  uint64_t seed;
} rr_arrival;

typedef struct rr_step_info {
  uint32_t size;
  int32_t phase;
  uint32_t bucket; /* rows after padding; 0: none */
  uint32_t rows;
  uint64_t index;                           /* RR_NEXT_STEP, or ascending; a jump becomes a gap */
  uint64_t time_ns;                         /* CLOCK_MONOTONIC, RR_TAKE_CLOCK or RR_NO_TIME */
  rr_column request, position, token, slot; /* [rows]; rows of one request stand together */
  const uint8_t* wants_output;              /* [rows]; NULL: all do */
} rr_step_info;

typedef struct rr_output_info {
  uint32_t size;
  uint32_t rows;               /* output rows */
  uint64_t step;               /* RR_LAST_STEP or an index */
  rr_column row;               /* [rows] index into the step's rows; data NULL: 0, 1, 2 ... */
  rr_column request, position; /* [rows]; data NULL: as that step's rows say, if it is the last */
  rr_column token;             /* [rows] sampled */
  rr_column digest;            /* [rows] 8 bytes, of the logits; data NULL: none */
  const float* log_sum_exp;    /* [rows] or NULL */
  uint32_t top_count;          /* top logits a row */
  uint32_t vocab;              /* of `logits` */
  const int32_t* top_tokens;   /* [rows][top_count] or NULL */
  const float* top_logits;     /* [rows][top_count] or NULL */
  const float* logits;         /* [rows][vocab] or NULL */
} rr_output_info;

typedef struct rr_stats {
  uint32_t size;
  uint32_t lanes;
  uint64_t steps_seen, steps_written, steps_dropped, steps_skipped;
  uint64_t records_dropped; /* of all kinds, steps included */
  uint64_t bytes_dropped;   /* of them, raw */
  uint64_t gaps;            /* gap records written */
  uint64_t outputs_written, events_written;
  uint64_t ring_bytes, ring_used_bytes, ring_peak_bytes; /* fullest lane */
  uint64_t file_bytes, files, chunks;
  uint64_t chunk_write_us_last, chunk_write_us_max;
  uint64_t first_dropped_step; /* UINT64_MAX: none */
  uint64_t triggers;
  int32_t failed; /* the file cannot be written any more */
  int32_t reserved;
} rr_stats;

RR_API uint32_t rr_abi_version(void);
RR_API const char* rr_version(void); /* "0.1.0" */

/* Defaults; `size` is sizeof of the caller's struct. */
RR_API void rr_options_init(rr_options* options, size_t size);
RR_API void rr_arrival_init(rr_arrival* arrival, size_t size);
RR_API void rr_step_info_init(rr_step_info* step, size_t size);
RR_API void rr_output_info_init(rr_output_info* outputs, size_t size);

/* Creates the trace and starts the library's thread. NULL on failure, then `message` (may be NULL)
 * says what, where and what to do. */
RR_API rr_recorder* rr_open(const rr_options* options, char* message, size_t message_size);

/* A ring of its own for the calling thread. NULL when memory or files run out. Lanes live until
 * rr_close; rr_lane_close lets another thread's lane take the place. */
RR_API rr_lane* rr_lane_open(rr_recorder* recorder);
RR_API void rr_lane_close(rr_recorder* recorder, rr_lane* lane);

/* The number of the engine's own request id; the same id gives the same number until it departs.
 * Allocates and locks: call it once a request. */
RR_API uint32_t rr_request_id(rr_recorder* recorder, const char* engine_id);

/* What changed before the lane's next step, in this order: departures, arrivals, pages. */
RR_API int rr_depart(rr_lane* lane, uint32_t request, int reason);
RR_API int rr_arrive(rr_lane* lane, const rr_arrival* arrival);
RR_API int rr_page(rr_lane* lane, uint32_t request, uint32_t index, uint32_t page, int shared);
RR_API int rr_event(rr_lane* lane, int kind, uint32_t request, uint32_t a, uint32_t b,
                    const char* text);

/* One step in one call, or in parts: begin reserves room for info->rows rows (its columns are not
 * read), rows fills the next `count` of them, end hands the step over. */
RR_API int rr_step(rr_lane* lane, const rr_step_info* info);
RR_API int rr_step_begin(rr_lane* lane, const rr_step_info* info);
RR_API int rr_step_rows(rr_lane* lane, uint32_t count, const rr_column* request,
                        const rr_column* position, const rr_column* token, const rr_column* slot,
                        const uint8_t* wants_output);
RR_API int rr_step_end(rr_lane* lane);

RR_API int rr_outputs(rr_lane* lane, const rr_output_info* outputs);

/* RR_KEEP_LAST: writes out what the rings hold; recording goes on. Async-signal-safe. */
RR_API int rr_trigger(rr_recorder* recorder);

/* Waits until all that was recorded before is in the file and, with sync, on the disk. */
RR_API int rr_flush(rr_recorder* recorder, uint32_t timeout_ms, int sync);

RR_API void rr_stats_read(const rr_recorder* recorder, rr_stats* stats, size_t size);
RR_API const char* rr_error_text(const rr_recorder* recorder); /* "" when nothing failed */

/* Drains the rings, ends the trace, removes the ring files and frees everything; all lanes end.
 * RR_OK, or RR_FAILED when the file is not complete; `stats` (may be NULL) are final. */
RR_API int rr_close(rr_recorder* recorder, rr_stats* stats, size_t stats_size);

#ifdef __cplusplus
}
#endif
#endif
