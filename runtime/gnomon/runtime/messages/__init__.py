"""The one language of the brains and of the wire: typed records, and nothing else.

Every message is an immutable named tuple of plain values (integers, floats, strings, bytes, tuples of these), so a
record *is* its wire form and costs nothing to pack. A message that speaks of many tasks holds them as columns of
equal length, one row per task. This room imports nothing of ours, does no input or output and knows no policy.

Contents:
    values     what columns hold: keys, payloads, errors, task options
    client     client to scheduler and back
    worker     scheduler to worker and back
    executor   worker agent to executor and back
    codec      batches of messages to bytes and back, with limits and type checks
    names      what a key says about its kind: group and prefix
"""

from __future__ import annotations

from gnomon.runtime.messages.client import (
    CancelFutures,
    ForgetCodes,
    FuturesCancelled,
    FuturesDone,
    FuturesErred,
    FuturesPending,
    ReleaseFutures,
    RetryFutures,
    ScatterData,
    UpdateGraph,
    WantKeys,
)
from gnomon.runtime.messages.codec import Limits, MessageError, decode, encode
from gnomon.runtime.messages.executor import (
    CancelTasks,
    DropValues,
    EncodeValues,
    ExecutorReady,
    PutSegments,
    PutValues,
    RunTasks,
    ShutdownExecutor,
    TasksReturned,
    ValueEncoded,
    ValueLost,
)
from gnomon.runtime.messages.values import (
    NO_OPTIONS,
    ByReference,
    ErrorRecord,
    Failure,
    Key,
    Message,
    Payload,
    Request,
    Response,
    TaskOptions,
)
from gnomon.runtime.messages.worker import (
    CloseWorker,
    Codes,
    ComputeTasks,
    DemandChanged,
    DropCodes,
    ExecutorLost,
    FetchReplicas,
    FreeTasks,
    Heartbeat,
    HeartbeatReply,
    Holders,
    RegionsTimed,
    RegisterWorker,
    ReplicasAdded,
    ReplicasMissing,
    StealReplies,
    StealTasks,
    TaskProfiled,
    TasksErred,
    TasksFinished,
    TasksSeceded,
    TransfersDone,
    WorkerRegistered,
)

__all__ = [
    "NO_OPTIONS",
    "ByReference",
    "CancelFutures",
    "CancelTasks",
    "CloseWorker",
    "Codes",
    "ComputeTasks",
    "DemandChanged",
    "DropCodes",
    "DropValues",
    "EncodeValues",
    "ErrorRecord",
    "ExecutorLost",
    "ExecutorReady",
    "Failure",
    "FetchReplicas",
    "ForgetCodes",
    "FreeTasks",
    "FuturesCancelled",
    "FuturesDone",
    "FuturesErred",
    "FuturesPending",
    "Heartbeat",
    "HeartbeatReply",
    "Holders",
    "Key",
    "Limits",
    "Message",
    "MessageError",
    "Payload",
    "PutSegments",
    "PutValues",
    "RegionsTimed",
    "RegisterWorker",
    "ReleaseFutures",
    "ReplicasAdded",
    "ReplicasMissing",
    "Request",
    "Response",
    "RetryFutures",
    "RunTasks",
    "ScatterData",
    "ShutdownExecutor",
    "StealReplies",
    "StealTasks",
    "TaskOptions",
    "TaskProfiled",
    "TasksErred",
    "TasksFinished",
    "TasksReturned",
    "TasksSeceded",
    "TransfersDone",
    "UpdateGraph",
    "ValueEncoded",
    "ValueLost",
    "WantKeys",
    "WorkerRegistered",
    "decode",
    "encode",
]
