// A link from one record back to its list.
import { ArrowLeftIcon } from "@primer/octicons-react";
import { PlainLink } from "./links.tsx";

export function BackLink({ href, children }: { href: string; children: string }) {
  return (
    <PlainLink href={href}>
      <ArrowLeftIcon /> {children}
    </PlainLink>
  );
}
