// How long a secret may go on beside the one that takes its place; seconds.

export const overlaps = [
  { value: "0", label: "not at all" },
  { value: "3600", label: "for 1 hour" },
  { value: "86400", label: "for 24 hours" },
  { value: "604800", label: "for 7 days" },
  { value: "2592000", label: "for 30 days" },
];
