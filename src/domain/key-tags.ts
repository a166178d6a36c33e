// Tags of API keys. Usage is counted by tag.

/** Maximum number of tags of a key, because each tag is counted with every request. */
export const maxKeyTags = 10;
export const maxTagLength = 64;
/** A tag begins with a letter or digit. Further characters may also be `. _ : @ / = + -`. */
export const tagPattern = /^[A-Za-z0-9][A-Za-z0-9._:@/=+-]*$/;
/** `tagPattern` without the prefixes that are reserved for the gateway: `asked:` and `gateway:`. */
export const givenTagPattern = /^(?!asked:|gateway:)[A-Za-z0-9][A-Za-z0-9._:@/=+-]*$/;
