"""The conversation of those who summarize, in nothing but the standard library: a book is read."""

INSTRUCTIONS = "You read a book. Call the tool for each of its pages, then say that it is read."
TASK = "Read the book, from its first page to its last."
MODEL, SUMMARIZER = "reader", "summarizer"
"""Who reads, and who is asked for a summary: by these names the server knows them apart."""
WORDS = "the quick brown fox jumps over the lazy dog and runs on "


async def page(number: int) -> str:
    """A page of the book.

    Args:
        number: Which.
    """
    return f"Page {number}: {WORDS * 12}"
