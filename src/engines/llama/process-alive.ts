// Reports whether the process that left a lock or an incomplete directory still runs.

/** Returns false for invalid process ids. A process of another user counts as running. */
export function isProcessAlive(pid: number): boolean {
  if (!Number.isInteger(pid) || pid <= 0) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}
