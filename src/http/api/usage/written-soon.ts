// A report waits for what just ended to be in the database, but not for a database that is slow.

const longestMs = 1_000;

/** Resolves when what was settled before is written, or cannot be: what the database has is still worth showing. */
export async function writtenSoon(writer: { flush(): Promise<void> }): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const deadline = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, longestMs);
  });
  await Promise.race([writer.flush().catch(() => undefined), deadline]);
  clearTimeout(timer);
}
