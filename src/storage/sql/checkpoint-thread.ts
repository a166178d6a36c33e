// The thread that moves SQLite's write-ahead log into the database: a call that waits for the disk several times.
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
    // The log is begun anew only once all of it was moved: what was written meanwhile takes another, shorter round.
    for (let round = 0; round < maxRounds && !movedAll(db); round++);
    done = true;
  } catch {
    // SQLite's own bound holds, and it is tried again once the log has grown by as much.
  }
  db?.close(true);
  self.postMessage({ done } satisfies CheckpointAnswer);
};

/** Uses the kind of checkpoint that keeps neither readers nor writers waiting. */
function movedAll(db: Sqlite): boolean {
  // A statement that nobody finalizes keeps its connection, with two open files, until the collector comes.
  using statement = db.prepare<{ log: number; checkpointed: number }, []>("PRAGMA wal_checkpoint(PASSIVE)");
  const answer = statement.get();
  return answer === null || answer.checkpointed >= answer.log;
}
