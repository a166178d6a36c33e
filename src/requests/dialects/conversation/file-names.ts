// Names of files for OpenAI's servers, which determine the type of a file by the extension of its name.

const extensions: ReadonlyMap<string, string> = new Map([
  ["application/pdf", "pdf"],
  ["application/json", "json"],
  ["application/msword", "doc"],
  ["application/vnd.ms-excel", "xls"],
  ["application/vnd.ms-powerpoint", "ppt"],
  ["application/vnd.openxmlformats-officedocument.presentationml.presentation", "pptx"],
  ["application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "xlsx"],
  ["application/vnd.openxmlformats-officedocument.wordprocessingml.document", "docx"],
  ["text/csv", "csv"],
  ["text/html", "html"],
  ["text/markdown", "md"],
  ["text/plain", "txt"],
]);

/** Returns the name with an extension. Titles of documents have no extension, and OpenAI refuses files without one. */
export function fileName(name = "file", mediaType: string): string {
  const type = mediaType.replace(/;.*$/s, "").trim().toLowerCase();
  const extension = extensions.get(type);
  if (extension === undefined || name.toLowerCase().endsWith(`.${extension}`)) return name;
  // Text files have many different extensions, such as those of programming languages. So any extension is accepted.
  const isNamedText = /^text\/|json$/.test(type) && /\.[a-z]\w{0,7}$/i.test(name);
  return isNamedText ? name : `${name}.${extension}`;
}
