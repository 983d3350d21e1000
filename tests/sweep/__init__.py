"""All small edits of a room, one after the other: which of them would no test notice?"""
