// A report waits for what just ended to be in the database, but not for a database that is slow.

const maxMs = 1_000;

/** Whether what was settled before is written; false also where it cannot be: what the database has is still worth showing. */
export async function writtenSoon(writer: { flush(): Promise<void> }): Promise<boolean> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const deadline = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), maxMs);
  });
  const flushed = writer.flush().then(
    () => true,
    () => false,
  );
  const isWritten = await Promise.race([flushed, deadline]);
  clearTimeout(timer);
  return isWritten;
}
