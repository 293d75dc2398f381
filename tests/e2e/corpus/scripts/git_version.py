import pygit2

repository = pygit2.init_repository("outputs/repository")
print(f"pygit2 {pygit2.__version__}: empty is {repository.is_empty}")
