// A link to the request in the log, shown as the beginning of its id.
import { PlainLink } from "../../parts/page/links.tsx";

export function RequestLink({ id }: { id: string }) {
  return (
    <PlainLink href={`/requests/${encodeURIComponent(id)}`} size="xs">
      Request {id.length > 16 ? `${id.slice(0, 14)}…` : id}
    </PlainLink>
  );
}
