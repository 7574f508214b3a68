// Replaced when this folder's first source arrives.
