# traces/schema/program.capnp - a Program as a value: the ordered commands of one step, with buffers
# instead of addresses. One message, unpacked; with its own tables of names and persistent
# buffers, so that it can be read alone:
#
#   capnp convert binary:text traces/schema/program.capnp Program < FILE
#
# Every index must be inside the table it points into and every region inside its buffer.
# Aliases and evolution rules: common.capnp.

@0x83c4a4fb9f08442f;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("redecode::schema");

using Run = import "run.capnp";

struct Program {
  names @0 :List(Text);                    # strings that NameId points into
  persistents @1 :List(PersistentBuffer);
  transients @2 :List(TransientBuffer);
  commands @3 :List(Command);
  regions @4 :List(Region);
  touched @5 :List(Region);
  args @6 :List(Arg);
  streamCount @7 :UInt32;                  # must be in [1, 16]
  eventCount @8 :UInt32;                   # must be at most 65536
  outsideStreams @9 :UInt32;               # bit mask: actors that do not follow the host
}

struct PersistentBuffer {
  # Outlives the step: weights, KV pages, static inputs.
  name @0 :UInt16;       # NameId
  size @1 :UInt64;       # Bytes
  pageBytes @2 :UInt64;  # Bytes a page of a paged KV buffer; else 0
  written @3 :Bool;      # content is defined before the first step
  version @4 :UInt32;    # of that content; 0: not stated
}

struct TransientBuffer {
  # Allocated and freed by the program.
  name @0 :UInt16;    # NameId
  layer @1 :UInt16;
  stream @2 :UInt8;   # the free list it comes from and returns to
  size @3 :UInt64;    # Bytes
}

enum CommandKind {
  launch @0;
  copy @1;
  fill @2;
  host @3;
  record @4;
  wait @5;
  sync @6;
  allocate @7;
  free @8;
  recordStream @9;
}

struct Command {
  kind @0 :CommandKind;
  stream @1 :UInt8;          # must be below streamCount, or 255: the host
  kernel @2 :UInt16;         # launch
  name @3 :UInt16;           # NameId of the op
  layer @4 :UInt16;
  event @5 :UInt16;          # record, wait; must be below eventCount
  buffer @6 :UInt32;         # allocate, free, recordStream; top bit: persistent; 0xffffffff: none
  firstRegion @7 :UInt32;
  regionCount @8 :UInt32;
  firstTouched @9 :UInt32;
  touchedCount @10 :UInt32;
  firstArg @11 :UInt32;
  argCount @12 :UInt32;
  beforeWait @13 :Bool;      # launch: the part of a PDL-launched kernel before its dependency wait
  needsAllBlocks @14 :Bool;  # launch: its blocks wait for each other
}

struct Region {
  buffer @0 :UInt32;     # top bit: persistent
  access @1 :Run.Access;
  offset @2 :UInt64;     # Bytes
  size @3 :UInt64;       # Bytes
  rowStride @4 :UInt32;  # Bytes a batch row where the range is [rows, ...], else 0
  request @5 :UInt32;    # RequestId whose KV page this is meant to be; 0xffffffff: not a KV range
  version @6 :UInt32;    # read: the content it is meant to see; write: that it makes; 0: any
}

enum ArgKind {
  shape @0;      # follows from model and bucket
  stepValue @1;  # follows from this step: must never be frozen
  reduction @2;  # fixes a reduction order: must not follow from the batch
  pageStride @3; # bytes from page to page of a paged operand
}

struct Arg {
  value @0 :Int64;  # an integer, or a float's bits
  kind @1 :ArgKind;
}
