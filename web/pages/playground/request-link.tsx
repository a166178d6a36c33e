// Leads to the request in the log, by the beginning of its id.
import { Anchor } from "@mantine/core";
import { Link } from "wouter";

export function RequestLink({ id }: { id: string }) {
  return (
    <Anchor component={Link} href={`/requests/${encodeURIComponent(id)}`} size="xs">
      Request {id.length > 16 ? `${id.slice(0, 14)}…` : id}
    </Anchor>
  );
}
