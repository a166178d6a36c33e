// Runs tasks at the end of a tick of the event loop, after all ready sockets have been read.

type Task = () => void;

const records: Task[] = [];
const sends: Task[] = [];
let isDue = false;

/** Runs `record` once at the end of the tick, before anything is sent. */
export function atTurnEnd(record: Task): void {
  records.push(record);
  fallDue();
}

/** Runs `send` once at the end of the tick, after all `record` tasks and the tasks that these add. */
export function sendAtTurnEnd(send: Task): void {
  sends.push(send);
  fallDue();
}

function fallDue(): void {
  if (isDue) return;
  isDue = true;
  setImmediate(endTurn);
}

function endTurn(): void {
  try {
    while (records.length + sends.length > 0) run(records.length > 0 ? records : sends);
    isDue = false;
  } catch (error) {
    // If a task fails, the remaining tasks still run.
    setImmediate(endTurn);
    throw error;
  }
}

function run(tasks: Task[]): void {
  let done = 0;
  try {
    while (done < tasks.length) tasks[done++]?.();
  } finally {
    tasks.splice(0, done);
  }
}
