// Finds paths in documents for contributors that lead nowhere.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** A path of the repository, or of the document's own folder, in a code span. */
const path =
  /`([\w.-]+(?:\/[\w.-]+)*(?:\/|\.(?:tsx?|lua|json|md|mjs|txt|yaml)))`|`((?:src|web|tests|scripts|docs)(?:\/[\w.-]+)+)`/g;
/** Names in the data directory and in a user's folder, and files that are made when they are first needed. */
const elsewhere =
  /^(?:(?:spool|models|files|engine|backups|forms)\/?|credentials\.json|headrace\.yaml|docs\/versions\.json|scripts\/safeguards\/renames\.txt|(?:dist|\.headrace)\b.*)$/;

/** One line for each path that neither the repository nor the folder of its document has. */
export function checkDocuments(root: string): string[] {
  const rooms = readdirSync(join(root, "src")).map((name) => `src/${name}/`);
  const documents = [
    ...rooms.map((room) => `${room}README.md`),
    "tests/README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
  ];
  return documents
    .filter((document) => existsSync(join(root, document)))
    .flatMap((document) => {
      const folder = document.slice(0, document.lastIndexOf("/") + 1);
      return [...readFileSync(join(root, document), "utf8").matchAll(path)]
        .map(([, file, directory]) => file ?? directory ?? "")
        .filter((named) => !existsSync(join(root, named)) && !existsSync(join(root, folder, named)))
        .filter((named) => !elsewhere.test(named))
        .map((named) => `${document}: names ${named}, which does not exist. Name what is there now.`);
    });
}
