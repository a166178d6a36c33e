// Tells operators which upstreams fail the requests of clients.
import { Alert } from "@mantine/core";
import { AlertIcon } from "@primer/octicons-react";
import { useList } from "../../api/queries.ts";
import type { Upstream } from "../../api/types.ts";
import { TextLink } from "../../parts/page/links.tsx";

const everyMs = 5_000;

export function FailingUpstreams() {
  const { items } = useList<Upstream>("/v1/admin/upstreams", {}, { everyMs });
  const failing = items.filter(({ attempts }) => attempts?.failing);
  if (failing.length === 0) return null;
  return (
    <Alert icon={<AlertIcon />} color="red" title="Upstreams that fail requests">
      {failing.map(({ name, attempts }) => (
        <div key={name} style={{ overflowWrap: "anywhere" }}>
          <TextLink href={`/admin/upstreams?upstream=${encodeURIComponent(name)}`}>{name}</TextLink>:{" "}
          {attempts?.summary}
        </div>
      ))}
    </Alert>
  );
}
