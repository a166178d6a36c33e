// From one of a list back to all of it.
import { Anchor } from "@mantine/core";
import { ArrowLeftIcon } from "@primer/octicons-react";
import { Link } from "wouter";

export function BackLink({ href, children }: { href: string; children: string }) {
  return (
    <Anchor component={Link} href={href} size="sm">
      <ArrowLeftIcon /> {children}
    </Anchor>
  );
}
