// The thread that moves SQLite's write-ahead log into the database. Each call waits for the disk several times.
import { Database as Sqlite } from "bun:sqlite";

export interface CheckpointRequest {
  file: string;
}

export interface CheckpointAnswer {
  done: boolean;
}

declare const self: Worker;

const maxRounds = 5;

self.onmessage = ({ data }: MessageEvent<CheckpointRequest>) => {
  let db: Sqlite | undefined;
  let done = false;
  try {
    db = new Sqlite(data.file, { readwrite: true, create: false });
    db.run("PRAGMA synchronous = NORMAL");
    // The log restarts only after all of it was moved. Writes during one round need another, shorter round.
    for (let round = 0; round < maxRounds && !movedAll(db); round++);
    done = true;
  } catch {
    // After a fault, the next attempt comes when the log has grown by another 32 MB. Until then, SQLite's own limit
    // applies.
  }
  db?.close(true);
  self.postMessage({ done } satisfies CheckpointAnswer);
};

/** Uses the kind of checkpoint that blocks neither readers nor writers. */
function movedAll(db: Sqlite): boolean {
  // A statement that is not finalized keeps its connection, with two open files, until the garbage collection.
  using statement = db.prepare<{ log: number; checkpointed: number }, []>("PRAGMA wal_checkpoint(PASSIVE)");
  const answer = statement.get();
  return answer === null || answer.checkpointed >= answer.log;
}
