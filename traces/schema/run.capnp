# traces/schema/run.capnp - records of a run file (.rdr): a header, then step outputs and findings.
#
#   zstd -dc FILE.rdr | capnp convert binary:text traces/schema/run.capnp RunRecord
#
# Aliases and evolution rules: common.capnp.

@0xf107643bc268f3d5;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("redecode::schema");

using Common = import "common.capnp";

struct RunRecord {
  # One message of the file. The first must be a header and is the only one; an end must be the
  # last.
  union {
    header @0 :RunHeader;
    output @1 :Common.StepOutput;
    finding @2 :Finding;
    end @3 :Common.End;
    schema @4 :Common.FileSchema;  # since 1.1: the only record of the schema chunk
    index @5 :Common.FileIndex;    # and of the index chunk
  }
}

struct RunHeader {
  writer @0 :Text;
  model @1 :Common.ModelIdentity;
  engine @2 :Common.EngineSettings;
  mode @3 :Common.Mode;
  traceDigest @4 :UInt64;
  # Digest of all steps of the trace in order: equal digests, same trace
  environment @5 :List(Text);  # must ascend
}

enum FindingKind {
  race @0;
  useAfterFree @1;
  unwritten @2;
  stale @3;
  foreign @4;
  frozen @5;
  numeric @6;
  hang @7;
}

enum Severity {
  conflicting @0;  # the result can be wrong
  unusual @1;      # nothing is wrong by itself
}

enum Access {
  none @0;
  read @1;
  write @2;
  update @3;
  scratch @4;
}

struct Finding {
  # One fault seen in the structure of the run.
  kind @0 :FindingKind;
  step @1 :UInt64;         # StepIndex
  request @2 :UInt32;      # RequestId, or 0xffffffff where every row is concerned
  layer @3 :UInt32;
  first @4 :Side;          # in program order
  second @5 :Side;         # op is empty where the finding has one side
  offset @6 :UInt64;       # Bytes, of the conflict within first.buffer
  size @7 :UInt64;         # Bytes concerned
  missingEdge @8 :Text;    # "indexer.logits (stream 3) -> wq_b (stream 0)"; races only
  advice @9 :Text;
  check @10 :Text;         # its name in `redecode explain`; empty: that of the kind
  severity @11 :Severity;

  struct Side {
    op @0 :Text;
    buffer @1 :Text;
    layer @2 :UInt32;
    stream @3 :UInt32;      # 255: the host
    command @4 :UInt32;     # index into the program of `step`
    step @5 :UInt64;        # StepIndex
    access @6 :Access;
    generation @7 :UInt64;  # of the pool block behind the buffer; 0: persistent
  }
}
