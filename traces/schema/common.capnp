# traces/schema/common.capnp - what traces and runs have in common: who wrote a file, under which
# conditions, and what a step produced.
#
# Aliases used in comments (Cap'n Proto has no type aliases; the number types are part of the
# format):
#   StepIndex   UInt64   engine iterations since the start of the recording, counted from 0
#   RequestId   UInt32   unique within a trace, never reused; 0xffffffff: no request
#   PageId      UInt32   physical KV page; page 0 is the dummy page that padding rows write
#   Slot        UInt32   KV slot in tokens: page * pageSize + position % pageSize
#   Token       Int32    vocabulary id; must be in [0, vocab)
#   Position    UInt32   0-based place of a token in its sequence
#   Digest      UInt64   XXH3 of stated bytes
#   Bytes       UInt64   a size or offset in bytes
#
# Evolution. Files outlive programs, so:
#   - add fields, enumerants and union arms with the next free number; never remove, renumber,
#     reuse or change a type; renaming is free;
#   - a new field's default must mean "as before";
#   - never move a field into a union;
#   - a reader must refuse an enumerant or union arm it does not know, by number (it cannot guess);
#   - what cannot be said this way needs a new major version of the container
#     (docs/trace-format.md).
#
# Lengths are capped (traces/limits.h); a reader must check them before it allocates.

@0xb8fdd4bd46679db9;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("redecode::schema");

struct ModelIdentity {
  family @0 :Text;           # "llama" or "dsv4"
  spec @1 :Text;             # how to make it again, e.g. "dsv4-small:seed=1"
  configDigest @2 :UInt64;   # Digest of the configuration
  weightsDigest @3 :UInt64;  # Digest of all weights
  vocab @4 :UInt32;          # tokens
  layers @5 :UInt32;
  weightsSha256 @6 :Text;    # 64 hex digits; empty: not known
  tokenizerSha256 @7 :Text;
  configSha256 @8 :Text;
}

struct FileSchema {
  # What the file's own records look like, so that it can be read without any schema text.
  request @0 :Data;  # a Cap'n Proto CodeGeneratorRequest: a message with its segment table
  root @1 :UInt64;   # id of the struct that every record is
  hash @2 :UInt64;   # Digest of `request`
}

struct FileIndex {
  # Where each chunk lies; the same follows from the chunk headers.
  chunks @0 :List(Chunk);

  struct Chunk {
    offset @0 :UInt64;    # Bytes
    size @1 :UInt64;      # Bytes
    number @2 :UInt64;
    firstStep @3 :UInt64;
    stepCount @4 :UInt32;
    recordCount @5 :UInt32;
    crc @6 :UInt32;       # of the stored payload
    kind @7 :UInt8;
  }
}

struct EngineSettings {
  pageSize @0 :UInt32;        # tokens a KV page
  pageCount @1 :UInt32;       # pages, including the dummy page 0
  maxBatchRows @2 :UInt32;    # rows
  maxSeqLen @3 :UInt32;       # tokens
  buckets @4 :List(UInt32);   # rows; must ascend
}

struct Mode {
  # Conditions of a run, as the words of the command line, so that a file is readable by eye and an
  # unknown word is refused by name.
  streams @0 :Text;      # single | multi
  capture @1 :Text;      # eager | graph
  backend @2 :Text;      # sim | cuda
  indexKey @3 :Text;     # bf16 | fp8 | fp4
  topk @4 :Text;         # v1 | v2
  kernels @5 :Text;      # exact | fast
  feedback @6 :Text;     # recorded | own
  probe @7 :Text;        # none | ops | values
  order @8 :Text;        # fifo | seed:N | script:...
  inject @9 :List(Text); # defect names; must ascend without repeats
  poison @10 :Bool;
  fullLogits @11 :Bool;
}

struct StepOutput {
  # What one step produced.
  step @0 :UInt64;            # StepIndex
  rows @1 :List(RowOutput);   # one for every row that wanted output, in row order
  ops @2 :List(OpProbe);      # empty unless probed
  order @3 :Text;             # departures from fifo order, e.g. "3.2-17.1"
}

struct RowOutput {
  row @0 :UInt32;                # index into the step's rows
  request @1 :UInt32;            # RequestId
  position @2 :UInt32;           # Position of the row's input token
  token @3 :Int32;               # Token sampled
  logitsDigest @4 :UInt64;       # Digest of the row's logits [vocab] as little-endian float32
  logSumExp @5 :Float32;
  topTokens @6 :List(Int32);     # Tokens of the largest logits: logit descending, token ascending
  topLogits @7 :List(Float32);   # their logits; must be as long as topTokens
  logits @8 :List(Float32);      # [vocab]; empty unless full logits were asked for
}

struct OpProbe {
  # What one command had written when it was done.
  command @0 :UInt32;           # index into the step's program
  layer @1 :UInt32;
  stream @2 :UInt32;
  op @3 :Text;                  # e.g. "indexer.logits"
  digest @4 :UInt64;            # Digest of all bytes written, operands in order
  rowDigests @5 :List(UInt64);  # one a batch row, or empty where the output has no rows
  elementSize @6 :UInt32;       # bytes an element of the first output: 0 (unknown), 1, 2 or 4
  values @7 :Data;              # bytes of the first output, little-endian; empty unless asked for
}

struct End {
  # Last record of a file that was closed in order. Its totals must equal what was read.
  chunks @0 :UInt64;   # before the one that holds this record
  records @1 :UInt64;  # before this one, the header included
  steps @2 :UInt64;
  rows @3 :UInt64;
  outputs @4 :UInt64;
  digest @5 :UInt64;   # trace: Digest of all steps in order; run: Digest of all outputs in order
  gaps @6 :UInt64;     # gap records
  stepsLost @7 :UInt64;  # that they count
  events @8 :UInt64;
  exchanges @9 :UInt64;
}
