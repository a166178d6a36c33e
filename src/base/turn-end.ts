// Runs tasks at the end of a turn of the event loop: all ready sockets have been read, and the loop does not wait yet.

type Task = () => void;

const records: Task[] = [];
const sends: Task[] = [];
let isDue = false;

/** Runs once, before anything is sent that was left to the end of the turn. */
export function atTurnEnd(record: Task): void {
  records.push(record);
  fallDue();
}

/** Runs once, after all records and everything they cause. */
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
    // If one task fails, the rest still run.
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
