/** Something a person has to provide; the message says what and how. */
export class MissingInput extends Error {}
