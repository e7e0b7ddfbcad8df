from acex.cli import main

main()
