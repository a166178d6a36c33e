// A file that the page has, given to whoever looks at it.

export function download(name: string, type: string, text: string | Blob): void {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  // Once the browser has it.
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
