// Saves data of the page as a file.

export function download(name: string, type: string, text: string | Blob): void {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  // The delay gives the browser time to read the file.
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
