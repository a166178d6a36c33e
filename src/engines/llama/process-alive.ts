// Checks whether a process that left a lock or a staging directory is still running.

/** Reports whether the process is running. False for an invalid id, true for a process of another user. */
export function isProcessAlive(pid: number): boolean {
  if (!Number.isInteger(pid) || pid <= 0) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}
