// The end of a turn of the event loop: all sockets that had something to say were heard, and it has not begun to wait again.

type Task = () => void;

const records: Task[] = [];
const sends: Task[] = [];
let isDue = false;

/** Once, before anything is sent that was left to the end of the turn. */
export function atTurnEnd(record: Task): void {
  records.push(record);
  fallDue();
}

/** Once, behind all records and behind what they bring about. */
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
    // The rest is not lost with the one that failed.
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
